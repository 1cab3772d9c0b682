"""Exercises on the three lectures: notebooks for a class, and a grader that runs what students hand in."""
