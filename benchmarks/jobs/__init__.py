"""What is measured. `wheels` runs in the environments of the wheels, the others in ours."""
