package redisstore

import (
	"bytes"
	"errors"
	"time"
)

// demoted are the error codes of a server that has become a replica. It keeps responding, with refusals. Its name
// may now point to another server, so such an error ends the connection, and the next connection resolves the name
// again.
var demoted = [...]string{"-READONLY", "-MASTERDOWN", "-LOADING"} // LOADING: it loads the data of the new primary

var errDemoted = errors.New("the server is no longer the primary: reconnecting")

// longEnough is the minimum lifetime of a connection to a server that refuses: it may be the right server.
const longEnough = 500 * time.Millisecond

// mostTold is the most bytes of a server's error that the operator sees.
const mostTold = 200

// refused ends a connection after an error line of a server that was demoted.
func (c *asideConn) refused(line []byte) {
	for _, prefix := range demoted {
		if !bytes.HasPrefix(line, []byte(prefix)) {
			continue
		}
		if c.refuses != nil {
			c.refuses(errors.New(string(line[1:min(len(line), mostTold)])))
		}
		if time.Since(c.made) > longEnough {
			c.failed = errDemoted
		}
	}
}
