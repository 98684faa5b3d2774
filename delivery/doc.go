// Package delivery keeps calls that may be made later, and makes them: a caller hands a
// request in and gets a receipt; the request is stored before the receipt is given, is sent
// under the policy of its upstream as every other call is, and is repeated by a schedule. What
// cannot be delivered becomes a dead letter, with every attempt and the reason in words.
//
// The promise is at least once: what was accepted is delivered or becomes a dead letter,
// whenever the process ends. Nothing is sent after a success was recorded, and running workers
// do not send the same delivery at once. A process that ends between a success and its record
// sends again; the upstream gets the same Idempotency-Key each time.
//
// A Queue keeps deliveries; package delivery/sqlite is the one for a single machine. A Worker
// claims what is due and sends it. The states, each change conditional on the one before it:
//
//	created -> queued -> processing -> completed
//	              ^          |    \--> failed (a dead letter) --redrive--> created or queued
//	              \--retry, given back, lease lost
//
// created waits behind another delivery of its order key; queued is sent once its due time has
// come; a delivery in created or queued that expires or is dropped becomes failed. What is over may call back: see Callback.
package delivery
