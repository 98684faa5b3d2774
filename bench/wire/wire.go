// Package wire is a minimal HTTP client, so that measurements show the server. A request is prepared bytes. Of a response the
// client reads status, length and body.
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
	Body []byte // body of the last response, until the next one
}

// Dial connects to an address.
func Dial(address string) (*Client, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Client{Conn: c, In: bufio.NewReaderSize(c, 8<<10)}, nil
}

// Ask sends a request and reads the response. It returns an error for another status.
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

// Request returns a request with a body. more has additional header lines.
func Request(method, path, kind, more string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", method, path, kind, more, len(body), body)
}
