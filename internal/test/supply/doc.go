// Package supply holds tests of what weir is built from, and of what it is built to: licences, pinned
// versions, and the same bytes wherever it is built.
package supply
