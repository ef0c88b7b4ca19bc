"""CloudFormation templates of a stage."""
