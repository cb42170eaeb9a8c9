"""Our variables in nginx's access log, as JSON."""

import json

from lib import process
from lib.server import SLOW

FORMAT = """    log_format inference escape=json
        '{"uri":"$uri","status":$status,"model":"$inference_model",'
        '"version":"$inference_version","verb":"$inference_verb",'
        '"id":"$inference_request_id","sequence":"$inference_sequence_id",'
        '"code":"$inference_status","tries":"$inference_tries",'
        '"queue":"$inference_queue_time","compute":"$inference_compute_time",'
        '"batch":"$inference_batch_size","backend":"$inference_backend",'
        '"instance":"$inference_instance","device":"$inference_device",'
        '"cache":"$inference_cache_status",'
        '"responses":"$inference_responses",'
        '"first":"$inference_first_response_time",'
        '"input":"$inference_compute_input_time",'
        '"output":"$inference_compute_output_time",'
        '"error":"$inference_error"}';
"""

WRITTEN = "access_log access.log inference;\n"      # in a server


class AccessLog:
    """The lines that are added from now on."""

    def __init__(self, server):
        self.file = server.prefix / "access.log"
        self.before = len(self._text())

    def _text(self):
        """Whole lines: nginx may be about to write the last one."""
        if not self.file.exists():
            return []
        return self.file.read_text().rpartition("\n")[0].splitlines()

    def lines(self, count=0, **wanted):
        """Those with these fields, as soon as there are so many."""
        def found():
            lines = [x for x in map(json.loads, self._text()[self.before:])
                     if wanted.items() <= x.items()]
            return lines if len(lines) >= count else None

        lines = process.wait_until(found, 5 * SLOW)
        assert lines is not None, f"not {count} of {wanted}: {self._text()}"
        return lines

    def line(self, **wanted):
        return self.lines(1, **wanted)[0]
