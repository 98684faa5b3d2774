// Package wstest has end-to-end tests of WebSockets through weir, with Go and JavaScript libraries on both sides.
package wstest
