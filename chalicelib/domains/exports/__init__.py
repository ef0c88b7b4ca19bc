"""Exports of a workspace to a file, from which the operator imports it."""
