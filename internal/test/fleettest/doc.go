// Package fleettest has tests that a fleet of real processes keeps one limit with real stores. It has no code to import.
package fleettest
