package serve

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/seed1158cd35/weir/observe"
)

// complaints writes messages of net/http to the log: one line, or one panic with its stack, per Write.
type complaints struct{ log *slog.Logger }

// common lists the beginnings of messages that any client can cause, as often as it wants.
var common = [...]string{
	"http: TLS handshake error", "http2: server", "http2: received GOAWAY", "timeout waiting for",
}

// longestComplaint is long enough to show the origin of a panic.
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
