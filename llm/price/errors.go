package price

import "github.com/seed1158cd35/weir/internal/doc"

// Errors lists all mistakes of a table in the order of the file, each with its line and field.
type Errors = doc.Errors
