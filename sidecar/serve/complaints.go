package serve

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/seed1158cd35/weir/observe"
)

// complaints takes what net/http has to say of connections and handlers, a line
// or a panic with its stack at a time, into the log.
type complaints struct{ log *slog.Logger }

// common is how complaints begin that whoever reaches the port can cause, as
// often as they like.
var common = [...]string{
	"http: TLS handshake error", "http2: server", "http2: received GOAWAY", "timeout waiting for",
}

// longestComplaint shows where a panic came from.
const longestComplaint = 4 << 10

func (c complaints) Write(b []byte) (int, error) {
	level := slog.LevelWarn
	for _, begin := range common {
		if bytes.HasPrefix(b, []byte(begin)) {
			level = slog.LevelDebug
		}
	}
	if ctx := context.Background(); c.log.Enabled(ctx, level) {
		c.log.Log(ctx, level, "http server", "error", observe.Redact(string(bytes.TrimSpace(b)), longestComplaint))
	}
	return len(b), nil
}
