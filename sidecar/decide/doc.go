// Package decide answers programs that keep their own connections and only want
// to know whether a call may be made now: POST /v1/acquire gives a permit for one
// attempt, or says why there is none, and POST /v1/report says how the attempt
// ended. The API is described by openapi.yaml, which the server serves itself.
//
// Every permit ends. One that nobody reports expires: what it was charged stays
// charged, a probe's place at the breaker is free again, and it is counted.
package decide
