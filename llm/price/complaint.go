package price

import "github.com/seed1158cd35/weir/internal/doc"

// A Complaint is one mistake in a table, and Errors are all of a file, in its order.
// They have names here for programs that tell mistakes apart, as package doc is internal.
type (
	Complaint = doc.Complaint
	Errors    = doc.Errors
)
