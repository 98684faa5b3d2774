package websocket

import (
	"cmp"
	"time"
)

// Operations of everything that is not a message of a declared route: new connections, and messages without a route
// or with an undeclared one. API Gateway calls them $connect and $default.
const (
	Connect = "connect"
	Default = "default"
)

// Connection is the scope whose value is the connection's ID.
const Connection = "connection"

// A Config configures an upstream's connections. The zero Config has the defaults.
type Config struct {
	// Field is the path of the field with the route's name in a message that is a JSON object. If it is empty, all
	// messages belong to the default route.
	Field []string

	Routes []string // declared routes; other messages belong to the default one

	MaxMessage int64         // the largest message, in bytes; 0 means 128 KiB
	Wait       time.Duration // the longest wait of a message for its turn, during which later ones wait too; 0 means no wait
	Write      time.Duration // the longest time for a peer to accept a message; 0 means 10s
	Ping       time.Duration // how often an idle peer gets a ping, and the time for its pong; 0 means 30s
	Idle       time.Duration // the longest time without a message in either direction; 0 means no limit
	Lifetime   time.Duration // the longest duration of a connection; 0 means no limit
	Refusals   int           // refused messages within 10s after which the connection is closed; 0 means no limit

	Most   int            // open connections of this process; 0 means no limit
	MostBy map[string]int // of one value of a scope
}

const (
	defaultMessage = 128 << 10
	defaultWrite   = 10 * time.Second
	defaultPing    = 30 * time.Second
)

// within is the time over which refused messages are counted.
const within = 10 * time.Second

// WithDefaults returns c with the default of every field that is 0.
func (c Config) WithDefaults() Config {
	c.MaxMessage = cmp.Or(c.MaxMessage, defaultMessage)
	c.Write = cmp.Or(c.Write, defaultWrite)
	c.Ping = cmp.Or(c.Ping, defaultPing)
	return c
}
