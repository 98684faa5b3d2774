// Package dynamostore keeps the limits of a fleet in a DynamoDB table. A Store is a fleet.Store.
//
// # Items
//
// Each key of a group is one item, with all limits of the key as attributes. So one update charges a call to all
// limits or to none. Updates commute wherever possible. They add to a number on the condition that it is not too
// high, so concurrent updates of one key do not conflict. The store does not read before it writes. It uses its
// copy of the item from the last response, and the condition of the update contains what it relies on.
//
// A call whose limits have different keys needs one update per item. The store sends them one after the other, the
// scarcest limit first. If one refuses, the store returns the units of the earlier ones. Until then, for a round
// trip, those units count as taken: other calls may be refused although no call uses the units. The limits are not
// exceeded. If the process dies in between, the units are lost until they expire.
//
// # Time
//
// DynamoDB reports its time only in the Date header of its responses, in seconds. A Store keeps bounds of the
// server's clock relative to the monotonic clock of the process. Each response narrows the bounds, to about a round
// trip plus the Margin. The Store decides by the lower bound and writes the upper bound. So neither a wrong clock
// nor uncertainty grants too much. It uses the wall clock only to detect that the machine was asleep. From the
// moment a process sees an attribute change, it measures the age of the value with its own clock. This is more
// exact than the bounds, and loses no units in steady use.
//
// If two processes take all units that they can get, the process nearer to the table, or the earlier one, may get
// most units, because it sees each new unit first. To prevent this, let processes use leases, or ask less often
// than once per round trip.
//
// # Repeats
//
// An item stores the latest answers of some lanes. So an update whose response was lost is recognized when it is
// repeated. An update that returns units has a condition on the previous value of its lane's attribute. So it is
// executed at most once, however late it arrives. If more lanes use an item within a minute than it has attributes
// for, a repeat may be executed as a new call. It then takes units again, but returns none.
//
// Only the process remembers a refusal, which writes nothing to the table.
//
// # Cost
//
// A decision is one write of an item, with one write unit per KB, even if its condition fails. A refusal is one
// strongly consistent read. An item has about 150 bytes, plus 45 per stored lane. A rolling limit adds 20 bytes for
// each two-hundredth of the window with usage. A bucket whose calls report unused units late keeps a history of 1
// to 4 KB. An item supports about 1,000 writes per second. A busier limit needs leases.
package dynamostore
