"""`TemplateClassifier`: parts found by search, examples as templates, matching from both sides."""
