// Package attack holds the tests that attack weir serve as it ships: callers, web pages and
// neighbours that mean harm. Beside each attack runs calm traffic that has nothing to do
// with it: none of it may be lost, and its p99 is reported. There is nothing in it to import.
package attack
