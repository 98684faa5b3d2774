package answers

import "github.com/seed1158cd35/weir/internal/doc"

// Errors lists all mistakes of a file of answers in its order, each with its line and field.
type Errors = doc.Errors
