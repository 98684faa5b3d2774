// Package runbooks walks through the pages of docs/runbooks: it plays the fault of each alert
// against a real weir serve, runs the page's commands in their order, and compares what they say.
package runbooks
