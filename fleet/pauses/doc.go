// Package pauses shares the pauses of an upstream among processes. When the upstream asks one process to wait, or
// an operator pauses or resumes it at one process, the others follow.
//
// No call waits for the store, except for the first read of a new process. A separate loop writes new local pauses
// to the store immediately. It reads new pauses of other processes every second, give or take half, and whenever
// this process sends the store another request. While the store is unreachable, each process keeps the pauses that
// it knows.
//
// All pauses of an upstream are in one record. Two versions of the record are merged. Of two pauses for the same
// reason, the one that ends later wins, and of two resumptions the later one. A pause given before a resumption is
// dropped. So the order, number and delay of writes do not matter, and processes refill a store that was emptied.
//
// A record never pauses a process for longer than the process's own configuration allows for a hint.
package pauses
