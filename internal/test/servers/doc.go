// Package servers starts real stores for tests and measurements: on free loopback
// ports, in directories of their own, ended with the test that started them.
package servers
