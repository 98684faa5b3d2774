// Package servers starts real stores for tests and measurements, on free loopback ports and in separate directories. They end
// with the test.
package servers
