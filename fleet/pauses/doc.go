// Package pauses makes the pauses that many processes know of the same upstream one:
// what the upstream asks one process to wait, or a person orders at one of them, all
// hear, and so they do when it is lifted.
//
// No call waits for the store, but for the first look of a process that has just begun.
// A loop beside the calls carries what is new here to the store at once, and looks
// there for what is new elsewhere: every second, give or take half, and as soon as this
// process asks the store for anything else. While the store is away each process keeps
// the pauses that it knows.
//
// All of an upstream's pauses stand in one record. Two versions of it are merged: of two
// pauses for the same reason that which ends later, of two lifts the later one, and no
// pause that was given before a lift. So it does not matter in which order processes
// write, how often, or how late, and a store that was emptied is filled again by
// whoever knows something.
//
// Whatever a record says, it holds nobody longer than the process's own configuration
// allows a hint to.
package pauses
