package answers

import "github.com/seed1158cd35/weir/internal/doc"

// A Complaint is one mistake in a file of answers, and Errors are all of a file, in its
// order. They have names here for programs that want to know where a mistake is.
type (
	Complaint = doc.Complaint
	Errors    = doc.Errors
)
