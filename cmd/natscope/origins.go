package main

import (
	"fmt"
	"net/url"
)

// checkOrigins refuses values of --allow-origin that no browser ever sends, and
// that would therefore allow nothing.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			return fmt.Errorf("--allow-origin %q is not an origin: write scheme, host and port without a path, as in https://shop.example:8443", o)
		}
	}
	return nil
}
