"""CloudFormation templates of a stage: data, alarms and edge."""
