//go:build !unix

package direct

import "net"

// pooled reports whether this system can detect activity on an idle connection.
const pooled = false

type probe struct{}

func (*probe) of(net.Conn)  {}
func (*probe) can() bool    { return false }
func (*probe) silent() bool { return false }
