"""Asset checks, jobs, schedules and sensors."""
