"""What a project hands to other programs: the classifier, as torch and as ONNX, and labels in formats of others.

Only ``classifier`` and ``onnx`` load torch; whoever needs tables alone does not pay for it.
"""
