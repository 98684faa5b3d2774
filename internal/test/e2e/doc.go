// Package e2e holds the tests of the whole: an unmodified SDK calls through weir
// to a real implementation of its service, which throttles and breaks. There is
// nothing in it to import.
package e2e
