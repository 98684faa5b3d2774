// Package fleettest holds the tests that a fleet of real processes keeps to one limit
// through real stores. It has no code of its own.
package fleettest
