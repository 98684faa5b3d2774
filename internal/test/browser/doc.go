// Package browser runs weir's status page, as weir serve serves it, in a real Chromium. It is a separate module, so that
// programs that use weir do not download the browser driver.
package browser
