// Package wire is an HTTP client that does as little as can be, so that what is measured is the server: a request is bytes
// that were made before, and of an answer its status and its length are read, and its body.
package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
)

// A Client is one connection, for one goroutine.
type Client struct {
	net.Conn
	In   *bufio.Reader
	Body []byte // of the last answer, until the next
}

// Dial connects to an address.
func Dial(address string) (*Client, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Client{Conn: c, In: bufio.NewReaderSize(c, 8<<10)}, nil
}

// Ask sends a request and reads the answer, whose status must be the one that is wanted.
func (c *Client) Ask(request []byte, status string) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	line, err := c.In.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 || string(line[9:12]) != status {
		return fmt.Errorf("answer %q, want status %s", line, status)
	}
	length := -1
	for {
		if line, err = c.In.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("an answer without a length")
	}
	c.Body = slices.Grow(c.Body[:0], length)[:length]
	_, err = io.ReadFull(c.In, c.Body)
	return err
}

// Request is a request with a body; more are lines of further headers.
func Request(method, path, kind, more string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", method, path, kind, more, len(body), body)
}
