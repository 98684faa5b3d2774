package classify

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
)

// isTLS reports whether TLS, not what runs inside it, failed. Most of the
// errors of crypto/tls have no type to know them by.
func isTLS(err error) bool {
	if inHandshake(err) {
		return true
	}
	s := err.Error()
	return strings.Contains(s, "tls: ") || strings.Contains(s, "x509: ")
}

// inHandshake reports whether TLS failed before the upstream could have read a
// request. In TLS 1.3 a client that is refused for its certificate has sent its
// request already, but the server refuses before it reads on.
func inHandshake(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return strings.HasPrefix(e.Msg, "first record") || strings.HasPrefix(e.Msg, "unsupported SSLv2")
	}
	return isCertificate(err) || isHandshakeAlert(err) ||
		strings.HasSuffix(err.Error(), "net/http: TLS handshake timeout")
}

func isCertificate(err error) bool {
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return authority || host || invalid
}

// handshakeAlerts (RFC 8446, 6.2) are sent for the handshake and never later.
var handshakeAlerts = [...]tls.AlertError{
	40, 42, 43, 44, 45, 46, 48, 49, 70, 71, 86, 109, 110, 112, 113, 115, 116, 120,
}

// isHandshakeAlert compares texts: the alert inside a connection's error is of
// a type that is not exported, but has the words of the one that is.
func isHandshakeAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Err == nil || op.Op != "remote error" && op.Op != "local error" {
		return false
	}
	text := op.Err.Error()
	for _, a := range handshakeAlerts {
		if a.Error() == text {
			return true
		}
	}
	return false
}
