"""The shipped logs and other text of the diagnostics: lines with place and time, and what they can prove."""
