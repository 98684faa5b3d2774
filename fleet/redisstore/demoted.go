package redisstore

import (
	"bytes"
	"errors"
	"time"
)

// A server that has become a replica goes on answering, and refuses. Its name may lead to another server since, so
// a connection to it ends with such an answer, and the next is made by name.
var demoted = [...]string{"-READONLY", "-MASTERDOWN", "-LOADING"} // LOADING: it reads the data of the new primary

var errDemoted = errors.New("the server is no longer the primary: reconnecting")

// longEnough is how long a connection lasts at least to a server that refuses: it may be the one that is meant.
const longEnough = 500 * time.Millisecond

// mostTold is how much of what a server says is kept for people.
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
