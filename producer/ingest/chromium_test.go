package ingest

func stopChromium() {}
