"""What a project hands to other programs: labels, predictions and the classifier, in their formats."""
