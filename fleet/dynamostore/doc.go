// Package dynamostore keeps the limits of a fleet in a DynamoDB table. A Store is a
// fleet.Store.
//
// # Items
//
// There is one item for each key of a group, with all limits of that key as
// attributes, so that a call is charged to all of them or to none by one update.
// Updates commute wherever they can: they add to a number on condition that it is
// not too high, so that processes that use one key at once do not get in each
// other's way. Nothing is read in order to be written: what the update needs to know
// is remembered from the last answer, and stands in its condition.
//
// A call whose limits have different keys needs an update for each item, one after
// the other, the scarcest first. If one refuses, what was taken before is given back.
// Between the two, for a round trip, others see the units as taken: they may be
// refused although in the end nobody uses them. The limits are not exceeded. If the
// process dies between the two, they are lost until they run out.
//
// # Time
//
// DynamoDB tells nobody its time, except in the Date header of its answers, to the
// second. A Store keeps bounds of the server's clock against the monotonic clock of
// the process, which each answer narrows to about a round trip and the Margin. It
// judges by the lower bound and writes by the upper one, so that neither a wrong
// clock nor uncertainty grants too much. The wall clock is not used, except to see
// that the machine was asleep. What a process has seen the item turn into, it times
// by its own clock from then on, which is more exact than the bounds and loses
// nothing in steady use.
//
// Of two processes that both take all they can get, the one that is nearer to the
// table, or got there first, sees a unit first each time, and may get most of them. Whoever
// minds that lets processes lease, or ask less often than a round trip takes.
//
// # Repeats
//
// An item remembers the latest answer of some lanes, so that an update whose answer was
// lost is recognised when it is sent again. An update that gives units back names what
// its lane's place in the item held before, and so is executed once at most, however late it
// arrives. If more lanes use an item within a minute than there are places, a repeat may
// be executed as a new call, which takes units once more but gives none back.
//
// A refusal is remembered by the process only: nothing is written for it.
//
// # Cost
//
// A decision is one write of an item, at one write unit for each KB, also if its
// condition fails; a refusal is one strongly consistent read. An item has about 150 bytes,
// 45 for each lane that it remembers, and for a rolling limit 20 for each two-hundredth
// of the window in which something was taken. A bucket whose calls report unused units
// late keeps a history of 1 to 4 KB. One item bears about 1,000 writes a second.
// Leases are what makes a busier limit possible.
package dynamostore
