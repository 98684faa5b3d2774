// Package delivery stores calls that may be made later, and makes them. A caller submits a request and gets a receipt.
// The request is stored before the receipt is returned. It is sent under the policy of its upstream, as any other call,
// and is retried by a schedule. A request that cannot be delivered becomes a dead letter, which keeps every attempt and
// a reason in words.
//
// Delivery is at least once: every accepted request is delivered or becomes a dead letter, even if the process ends at
// any point. No delivery is sent after its success was recorded, and running workers do not send the same delivery
// concurrently. A process that ends between a success and its record causes another attempt. The upstream gets the same
// Idempotency-Key with each attempt.
//
// A Queue stores deliveries. Package delivery/sqlite implements it for a single machine. A Worker claims and sends due
// deliveries. Each change of state is conditional on the previous state:
//
//	created -> queued -> processing -> completed
//	              ^          |    \--> failed (a dead letter) --redrive--> created or queued
//	              \--retry, given back, lease lost
//
// A created delivery waits behind another delivery of its order key. A queued delivery is sent when it is due. A
// created or queued delivery that expires or is dropped becomes failed. A delivery that has ended may call back: see
// Callback.
package delivery
