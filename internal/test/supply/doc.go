// Package supply has tests of weir's dependencies and of its build: licenses, pinned versions, and reproducible bytes.
package supply
