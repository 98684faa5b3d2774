// Package runbooks tests the pages of docs/runbooks: for each alert it causes the fault at a real weir serve, runs the page's
// commands in order, and compares their output.
package runbooks
