// Package attack has tests that attack weir serve as released: malicious callers, web pages and neighbors. Independent normal
// traffic runs during each attack. None of it may be lost, and its p99 is reported. The package has no code to import.
package attack
