package websocket

import (
	"cmp"
	"time"
)

// The operations to which everything belongs that is no message of a route of its own: beginnings of connections, and
// messages that name no route or one that nobody declared. API Gateway has them as $connect and $default.
const (
	Connect = "connect"
	Default = "default"
)

// Connection is the scope whose value is the connection itself.
const Connection = "connection"

// A Config is how connections of an upstream are served. The zero Config is that of the comments.
type Config struct {
	// Field is where a message that is a JSON object has the name of its route, from the outside in; none means that all
	// messages are of the default route.
	Field []string

	Routes []string // that messages may name; others are of the default one

	MaxMessage int64         // the largest message, in bytes; 0 means 128 KiB
	Wait       time.Duration // longest that a message waits for its turn, while those behind it wait, too; 0 means not at all
	Write      time.Duration // longest that a peer may take to take a message; 0 means 10s
	Ping       time.Duration // how often a peer is asked for a sign of life that sends nothing, and how long it may take for it; 0 means 30s
	Idle       time.Duration // longest without a message in either direction; 0 means any time
	Lifetime   time.Duration // longest that a connection lasts; 0 means any time
	Refusals   int           // messages refused within 10s of each other's first, after which the connection is closed; 0 means any number

	Most   int            // connections at once, of this process; 0 means any number
	MostBy map[string]int // of one value of a scope
}

const (
	defaultMessage = 128 << 10
	defaultWrite   = 10 * time.Second
	defaultPing    = 30 * time.Second
)

// within is the time in which messages are counted that were refused.
const within = 10 * time.Second

// WithDefaults is c with everything that is 0 replaced by its default.
func (c Config) WithDefaults() Config {
	c.MaxMessage = cmp.Or(c.MaxMessage, defaultMessage)
	c.Write = cmp.Or(c.Write, defaultWrite)
	c.Ping = cmp.Or(c.Ping, defaultPing)
	return c
}
