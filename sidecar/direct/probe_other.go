//go:build !unix

package direct

import "net"

// pooled is whether it can be seen here that nothing has happened on an idle connection.
const pooled = false

type probe struct{}

func (*probe) of(net.Conn)  {}
func (*probe) can() bool    { return false }
func (*probe) silent() bool { return false }
