// Package breakers connects the breakers of many processes for the same upstream. If one breaker opens, all open.
// One call in the complete fleet probes, and the fleet agrees on the result.
//
// No call waits for the store. Each process keeps its own breakers, and a separate loop exchanges changes with the
// store. It writes local changes immediately and reads changes of other processes within two seconds. While the
// store is unreachable, every breaker decides for itself, as without a fleet.
//
// # Rules of a breaker.Config in a fleet
//
// Failures within Window are counted for the complete fleet. The processes add their failures in the store. The
// process whose failures raise the sum to Failures opens the breaker for all. Fifty processes with one failure each
// have fifty failures, so a fleet needs a larger number than a single process.
//
// Consecutive and Share also need the number of successes. Processes do not send successes to the store, because
// there are too many. Each process applies these rules to its own calls, and the first breaker that opens opens
// all. So a process with a broken network can open the breaker of the fleet. The breaker closes when a probe of
// another process succeeds.
//
// All processes should have the same Config. While the Configs differ, each process uses its own, and the process
// that opens a breaker sets the open time.
package breakers
