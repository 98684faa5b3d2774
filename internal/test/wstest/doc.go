// Package wstest has tests of WebSockets through a whole weir, with libraries of Go and JavaScript on both sides.
package wstest
