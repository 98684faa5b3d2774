// Package e2e has end-to-end tests: an unmodified SDK calls through weir a real implementation of its service, which throttles
// and fails. The package has no code to import.
package e2e
