package main

import "testing"

func TestOriginsOfBrowsers(t *testing.T) {
	if err := checkOrigins([]string{"https://shop.example", "http://shop.example:8080", "chrome-extension://abc"}); err != nil {
		t.Error(err)
	}
	for _, o := range []string{"", "null", "*", "shop.example", "https://shop.example/", "https://shop.example/page", "https://", "https://user@shop.example", "https://*.shop.example:x"} {
		if checkOrigins([]string{o}) == nil {
			t.Errorf("%q is taken for an origin", o)
		}
	}
}
