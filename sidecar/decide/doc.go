// Package decide serves programs that keep their own connections and only ask whether a call may be made now. POST
// /v1/acquire returns a permit for one attempt, or the reason for the refusal. POST /v1/report reports how the
// attempt ended. The server serves the description of the API, openapi.yaml.
//
// Every permit ends. An unreported permit expires and is counted. Its charge remains, and the breaker can admit
// another probe.
package decide
