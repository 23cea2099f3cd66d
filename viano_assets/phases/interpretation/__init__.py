"""What the report says: observation, expectation, assumption, facts."""
