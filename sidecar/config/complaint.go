package config

import "github.com/seed1158cd35/weir/internal/doc"

// A Complaint is one mistake in a configuration, and Errors are all of a file, in its
// order.
type (
	Complaint = doc.Complaint
	Errors    = doc.Errors
)
